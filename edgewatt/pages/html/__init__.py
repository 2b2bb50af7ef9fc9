"""What every page is made of: frame, texts and data that cannot get out of their place, tables, drawings, charts."""
