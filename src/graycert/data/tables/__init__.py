"""Tables of edges and nodes: read as they are, and whatever is assumed of them said or refused."""
