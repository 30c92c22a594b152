"""A log read as versions of its partitions, brokers, configs and epochs, by the replay that controllers have."""
