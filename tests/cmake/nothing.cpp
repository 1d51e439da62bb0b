// An empty translation unit: its target only lends its include folders.
