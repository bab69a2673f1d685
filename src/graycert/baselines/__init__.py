"""Rival certificates and floors, on the same splits and in the same form as our own results."""
