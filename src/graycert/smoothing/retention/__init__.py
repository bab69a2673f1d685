"""Uniform node retention (App. J): keep k nodes of the receptive field; exact where it can be."""
