"""iMLDF: deep forests on interaction representations."""
