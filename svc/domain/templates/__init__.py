"""Templates: revisions, reviews, Dockerfiles and bundles."""
