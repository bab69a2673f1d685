"""How each kind of figure or table is computed and drawn, one file per kind."""
