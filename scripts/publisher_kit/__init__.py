"""Tests for other people's publishers: histories, the ways in which they are told, and what must be seen."""
