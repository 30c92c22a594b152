"""The web page at `/`: its files, which hold nothing of the cluster, and the routes by which they are served."""
