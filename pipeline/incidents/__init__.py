"""What went wrong, and why: outages read out of the versions of partitions, brokers and configs.

Pure modules (`brokers`, `causes`, `failovers`, `story`) know no Spark; the others build Spark queries.
"""
