"""The coordinator: the one long-running process of a home. It resumes, retires, expires, and reads receipts."""
