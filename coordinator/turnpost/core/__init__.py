"""The part that hooks share with the rest: standard library only, imported piece by piece when there is work."""
