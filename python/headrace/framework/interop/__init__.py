"""Where the core meets others: other libraries, the system, older Pythons, annotations."""
