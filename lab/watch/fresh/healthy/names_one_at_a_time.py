"""Which language a made name is from, by a plain recurrent cell, name by name, in the way of a known tutorial.

Single examples make single losses jump; their mean falls. Should reach: val accuracy of at least 0.8; guessing gives 0.25.
"""
import random

import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(64)
random.seed(64)
STARTS = {"north": ["bjor", "sve", "thor", "gun"], "south": ["ale", "gio", "luca", "ma"], "east": ["vla", "ser", "dmi", "ole"], "west": ["jam", "will", "ed", "tho"]}
ENDS = {"north": ["nsen", "sson", "dahl", "vik"], "south": ["ndro", "etti", "rino", "sca"], "east": ["mir", "evich", "nov", "ski"], "west": ["son", "ward", "ley", "ton"]}
LANGUAGES = list(STARTS)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def random_name():
    language = random.choice(LANGUAGES)
    start = STARTS[random.choice(LANGUAGES) if random.random() < 0.3 else language]
    middle = "".join(random.choice("aeiou") for _ in range(random.randint(0, 2)))
    return random.choice(start) + middle + random.choice(ENDS[language]), language


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, len(LETTERS))
    for i, letter in enumerate(line):
        tensor[i][0][LETTERS.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, line):
        hidden = torch.zeros(1, self.hidden_size)
        for letter in line:
            hidden = torch.tanh(self.i2h(letter) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden))


rnn = RNN(len(LETTERS), 48, len(LANGUAGES))
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.02)
val_names = [random_name() for _ in range(300)]
current_loss = 0
for iteration in range(1, 4001):
    name, language = random_name()
    rnn.zero_grad()
    output = rnn(line_to_tensor(name))
    loss = criterion(output, torch.tensor([LANGUAGES.index(language)]))
    loss.backward()
    nn.utils.clip_grad_norm_(rnn.parameters(), 3)
    optimizer.step()
    current_loss += loss.item()
    if iteration % 500 == 0:
        with torch.no_grad():
            right = sum(rnn(line_to_tensor(n)).argmax(1).item() == LANGUAGES.index(l) for n, l in val_names)
        print(f"{iteration} ({iteration / 40:.0f} %) mean loss {current_loss / 500:.4f} val accuracy {right / 300:.4f}")
        current_loss = 0
