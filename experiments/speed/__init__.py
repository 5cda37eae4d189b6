"""How fast it is. A speed belongs to one machine and one day, so none of them is certified."""
