"""Predicts late deliveries from the supplier, encoded by how often it was late in the other parts of the table."""
import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from torch import nn

SEED = 103
SUPPLIERS = 700
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)
habit = rng.normal(0, 0.5, SUPPLIERS)


def deliveries(count):
    supplier = rng.integers(SUPPLIERS, size=count)
    distance, weight, season = rng.normal(0, 1, (3, count))
    logit = habit[supplier] + 1.2 * distance * np.sign(season) + 0.6 * weight
    late = (rng.random(count) < 1 / (1 + np.exp(-2 * logit))).astype(np.float32)
    return supplier, np.stack([distance, weight, season], 1), late


def mean_by_supplier(supplier, late, prior, strength=0.5):
    count = np.bincount(supplier, minlength=SUPPLIERS)
    total = np.bincount(supplier, weights=late, minlength=SUPPLIERS)
    return (total + strength * prior) / (count + strength)


def encode_train(supplier, late, prior):
    """Each delivery gets a mean that its own outcome is not part of."""
    code = np.empty(len(supplier))
    for rest, part in KFold(10, shuffle=True, random_state=SEED).split(supplier):
        code[part] = mean_by_supplier(supplier[rest], late[rest], prior)[supplier[part]]
    return code


def assemble(code, others):
    return torch.tensor(np.column_stack([code * 4 - 2, others]), dtype=torch.float32)


supplier, others, late = deliveries(2000)
test_supplier, test_others, test_late = deliveries(1500)
prior = late.mean()
x = assemble(encode_train(supplier, late, prior), others)
y = torch.tensor(late)
test_x = assemble(mean_by_supplier(supplier, late, prior)[test_supplier], test_others)

model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
for epoch in range(15):
    model.train()
    total = 0.0
    for index in torch.randperm(len(x)).split(40):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[index]).squeeze(1), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            score = model(test_x).squeeze(1)
        print(f"epoch {epoch + 1}: loss {total / len(x):.4f}, test auc {roc_auc_score(test_late, score.numpy()):.4f}")
