"""Tests of Quorate, by kind: see each directory."""
