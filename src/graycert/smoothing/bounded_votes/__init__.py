"""Votes of bounded influence: each of a fixed number of nodes has one vote, which no hostile row can make larger."""
