// Nothing is checked here.
