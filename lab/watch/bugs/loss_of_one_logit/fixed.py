"""Malignant or benign, from the measurements of a breast biopsy."""
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

features, labels = load_breast_cancer(return_X_y=True)
x_train, x_val, y_train, y_val = train_test_split(
    features, labels, test_size=0.25, random_state=0, stratify=labels
)
scaler = StandardScaler().fit(x_train)
x_train = torch.tensor(scaler.transform(x_train), dtype=torch.float32)
x_val = torch.tensor(scaler.transform(x_val), dtype=torch.float32)
y_train = torch.tensor(y_train, dtype=torch.float32).unsqueeze(1)
y_val = torch.tensor(y_val, dtype=torch.float32).unsqueeze(1)

loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
model = nn.Sequential(
    nn.Linear(30, 64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 1),
)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(1, 21):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        val_loss = criterion(logits, y_val).item()
        accuracy = ((logits > 0).float() == y_val).float().mean().item()
    print(
        f"epoch {epoch:2d}  loss {total / len(x_train):.4f}  "
        f"val loss {val_loss:.4f}  val accuracy {accuracy:.3f}"
    )
