"""Ten in a hundred training labels are wrong, as with hired annotators; the model must not learn them by heart.

The training loss stays above 0.5 by nature.
Should reach: val accuracy of at least 0.93 against clean labels.
"""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

x, y = load_digits(return_X_y=True)
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.25, random_state=0, stratify=y)
mean, std = x_train.mean(), x_train.std()
x_train = torch.tensor((x_train - mean) / std).float()
x_val = torch.tensor((x_val - mean) / std).float()
y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)

wrong = torch.rand(len(y_train)) < 0.10
y_train = torch.where(wrong, torch.randint(0, 10, y_train.shape), y_train)

train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=450)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.4), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)

for epoch in range(15):
    model.train()
    running_loss = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()

    model.eval()
    correct, val_loss = 0, 0.0
    with torch.no_grad():
        for inputs, labels in val_loader:
            outputs = model(inputs)
            val_loss += criterion(outputs, labels).item()
            correct += (outputs.argmax(1) == labels).sum().item()
    print(
        f"Epoch {epoch + 1}, loss: {running_loss / len(train_loader):.4f}, "
        f"val loss: {val_loss / len(val_loader):.4f}, val accuracy: {correct / len(y_val):.4f}"
    )
