"""Made-up histories of a cluster's metadata: logs as a controller would have written them."""
