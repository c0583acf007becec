"""The product as a Python API: one module per family, each function answers with a frozen result and prints nothing.

    from turnpost.core import home
    from turnpost.actions import sending

    sent = sending.send(home.home(), ["alpha"], "the tests fail on main")

Nothing is imported here, so that sending does not pay for launching.
"""
