import argparse
import math
import os
import time

import torch
import torch.nn as nn

import data
import model as models

parser = argparse.ArgumentParser(description="word language model")
parser.add_argument("--data", type=str, default="./corpus")
parser.add_argument("--model", type=str, default="LSTM", choices=["LSTM", "GRU", "RNN_TANH"])
parser.add_argument("--emsize", type=int, default=200)
parser.add_argument("--nhid", type=int, default=200)
parser.add_argument("--nlayers", type=int, default=2)
parser.add_argument("--lr", type=float, default=20)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--batch_size", type=int, default=2)
parser.add_argument("--bptt", type=int, default=3)
parser.add_argument("--tied", action="store_true")
parser.add_argument("--cuda", action="store_true")
parser.add_argument("--save", type=str, default="model.pt")
parser.add_argument("--onnx-export", type=str, default="")
args = parser.parse_args()

if torch.cuda.is_available() and not args.cuda:
    print("WARNING: there is a CUDA device; run with --cuda.")
device = torch.device("cuda") if args.cuda else torch.device("cpu")
corpus = data.Corpus(args.data)


def batchify(ids, size):
    count = ids.size(0) // size
    return ids.narrow(0, 0, count * size).view(size, -1).t().contiguous().to(device)


train_data = batchify(corpus.train, args.batch_size)
val_data = batchify(corpus.valid, 1)
test_data = batchify(corpus.test, 1)
ntokens = len(corpus.dictionary)
model = models.RNNModel(args.model, ntokens, args.emsize, args.nhid, args.nlayers, tie=args.tied).to(device)
criterion = nn.NLLLoss()


def repackage(hidden):
    if isinstance(hidden, torch.Tensor):
        return hidden.detach()
    return tuple(repackage(part) for part in hidden)


def get_batch(source, i):
    length = min(args.bptt, len(source) - 1 - i)
    return source[i : i + length], source[i + 1 : i + 1 + length].view(-1)


def evaluate(source):
    model.eval()
    total, hidden = 0.0, model.init_hidden(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            inputs, targets = get_batch(source, i)
            output, hidden = model(inputs, hidden)
            hidden = repackage(hidden)
            total += len(inputs) * criterion(output, targets).item()
    return total / (len(source) - 1)


def train():
    model.train()
    hidden = model.init_hidden(args.batch_size)
    for i in range(0, train_data.size(0) - 1, args.bptt):
        inputs, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage(hidden)
        output, hidden = model(inputs, hidden)
        criterion(output, targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)


lr = args.lr
best_val_loss = None
try:
    for epoch in range(1, args.epochs + 1):
        start = time.time()
        train()
        val_loss = evaluate(val_data)
        print("| end of epoch {:3d} | {:5.2f}s | ppl {:8.2f}".format(epoch, time.time() - start, math.exp(val_loss)))
        if not best_val_loss or val_loss < best_val_loss:
            with open(args.save, "wb") as f:
                torch.save(model, f)
            best_val_loss = val_loss
        else:
            lr /= 4.0
except KeyboardInterrupt:
    print("Exiting from training early")

with open(args.save, "rb") as f:
    model = torch.load(f, weights_only=False)
    if hasattr(model, "rnn"):
        model.rnn.flatten_parameters()
print("test ppl", math.exp(evaluate(test_data)))
if len(args.onnx_export) > 0:
    os.makedirs(os.path.dirname(os.path.abspath(args.onnx_export)), exist_ok=True)
