"""Targets certified all at once or block by block, by one worker or several; what is done is kept."""
