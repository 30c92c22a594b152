"""The Spark data source ``quorate-log``: one row for each record of a log."""

from pipeline.walk import read_range as read_range
