"""Incidents and their causes: outages read out of the versions of partitions, brokers and configs.

Everything is decided by pure modules, over arrays; only `search` and `epochs` know Spark, which moves their bytes.
"""
