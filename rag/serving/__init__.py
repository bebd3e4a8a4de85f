"""Small pure-ASGI pieces that ``app.py`` composes."""
