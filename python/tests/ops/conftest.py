"""Beside the tests of the rooms: driver.py and rows.py, found because this is here."""
