#!/bin/bash
set -e
git clone http://127.0.0.1:29733/.git code
cd code
python -c "import model; print(model.predict([1, 2, 3]))"
