"""Plans: what a training will need and reach, from short measurements on this machine."""
