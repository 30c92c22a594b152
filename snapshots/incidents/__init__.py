"""Outages in a log, from when to when and why: of brokers, controllers and partitions.

Facts and rules that one process and Spark share; Spark's own columns for partitions: ``pipeline.incidents``.
"""
