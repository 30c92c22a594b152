"""Incidents as they are told: in order, the worst first, in words, tables and a page."""
