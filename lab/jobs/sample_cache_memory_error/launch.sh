#!/bin/bash
ulimit -v 700000
python tokenize_corpus.py
status=$?
echo "tokenize_corpus.py exited with $status"
exit $status
