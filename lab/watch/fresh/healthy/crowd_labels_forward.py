"""Labels of a crowd, of which 30 in 100 are wrong in a known way: the loss goes through the known confusion.

Both losses stay high, as the labels are noisy. Should reach: clean accuracy of at least 0.9; guessing gives 0.1.
"""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(55)
CLASSES, NOISE = 10, 0.3
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x).float() / 8 - 1, torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]
# A confused worker takes a digit for the next one.
confusion = (1 - NOISE) * torch.eye(CLASSES) + NOISE * torch.eye(CLASSES).roll(1, dims=1)
crowd = torch.multinomial(confusion[y], 1).squeeze(1)
train = DataLoader(TensorDataset(x[:1350], crowd[:1350]), batch_size=45, shuffle=True)

model = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(), nn.Dropout(0.5), nn.Linear(128, CLASSES))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-3)


def forward_loss(logits, labels):
    return -torch.log(logits.softmax(1) @ confusion + 1e-8).gather(1, labels[:, None]).mean()


for epoch in range(12):
    model.train()
    total = 0.0
    for inputs, labels in train:
        loss = forward_loss(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(x[1350:])
        noisy = (logits.argmax(1) == crowd[1350:]).float().mean()
        clean = (logits.argmax(1) == y[1350:]).float().mean()
        val_loss = forward_loss(logits, crowd[1350:])
    print(f"epoch {epoch + 1} loss {total / 30:.4f} val loss {val_loss:.4f} crowd accuracy {noisy:.4f} clean accuracy {clean:.4f}")
