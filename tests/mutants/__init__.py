"""Small faults planted one at a time in the code that claims rest on: `make mutants` counts them."""
