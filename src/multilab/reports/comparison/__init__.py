"""Page of `multilab compare`: one dataset, several methods, a recommendation."""
