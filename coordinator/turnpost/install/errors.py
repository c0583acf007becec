"""What installing can refuse."""

from turnpost.core.errors import Refused


class SettingsRefused(Refused):
    """A settings file or an interpreter that turnpost leaves alone; nothing was written."""

    default_rule = "bad-settings"
