"""Nodes, edges, topological walks and selectors: the same for every kind of project."""
