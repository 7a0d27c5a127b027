"""Words and their languages, for the language-consistency reward.

`prose.py` says where words are counted (not in code, LaTeX, tags), `scripts.py` what a word is and which script it is
in, `han.py` tells Chinese from Japanese, `detect.py` languages of one script, with `function_words.py`.
"""
