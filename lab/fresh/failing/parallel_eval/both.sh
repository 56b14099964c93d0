set -e
mkdir -p weights
python fit.py --out weights/net.pth --epochs 2
python score.py --weights weights/net.pth
