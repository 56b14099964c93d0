"""A layer, function or loss receives a tensor whose shape does not match."""

from epochzero.check.rule import Rule, failure_check

RULE = Rule(
    category="tensor_mismatch",
    why="PyTorch checks shapes only when an operation runs. A mismatch in the training code "
    "raises an error in the first step. A mismatch in a head that only the evaluation uses raises "
    "an error after training.",
    fix="Derive one size from the other so that the sizes match.",
    source="Zhang et al., ICSE 2020, section 3.2, Tensor Mismatch: adjacent layers that are incompatible",
    check=failure_check("shape", message=lambda failed: failed.why),
    examples="""
        import torch
        from torch import nn
        import torch.nn.functional as F


        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(9, 2))
        print(net(torch.rand(1, 4)))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F


        class Net(nn.Module):
            def __init__(self, hidden):
                super().__init__()
                self.a = nn.Linear(8, hidden)
                self.b = nn.Linear(512, 2)

            def forward(self, x):
                return self.b(F.relu(self.a(x)))  # <-


        print(Net(256)(torch.rand(4, 8)))
        ---- ignored if
        -print(Net(256)(torch.rand(4, 8)))
        +print(Net(512)(torch.rand(4, 8)))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F


        net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(32))
        print(net(torch.load('images.pt')))  # <-
        ---- ignored if
        -net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(32))
        +net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Flatten(), nn.Linear(400, 2))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
                self.last = nn.Linear(8, 9)

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return nn.functional.relu(self.last(self.last(x)))  # <-


        print(Net()(torch.rand(2, 8)))
        ---- ignored if
        -        self.last = nn.Linear(8, 9)
        +        self.last = nn.Linear(8, 8)
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F


        x = torch.rand(4, 3, 8)
        print(x.view(4, -1, 5))  # <-
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F


        class Block(nn.Module):
            def __init__(self, given, made):
                super().__init__()
                self.conv = nn.Conv2d(given, made, 3, padding=1)
                self.norm = nn.BatchNorm2d(made)

            def forward(self, x):
                return F.relu(self.norm(self.conv(x)))


        class Net(nn.Module):
            def __init__(self, widths):
                super().__init__()
                layers = []
                before = 1
                for width in widths:
                    layers += [Block(before, width), nn.MaxPool2d(2)]
                    before = width
                self.body = nn.Sequential(*layers)
                self.head = nn.Linear(32 * 7 * 7, 10)

            def forward(self, x):
                x = self.body(x)
                return self.head(x.view(x.size(0), -1))


        from torch.utils.data import DataLoader
        from torchvision import datasets, transforms

        data = datasets.MNIST('data', transform=transforms.ToTensor())
        net = Net([16, 32]).to('cpu')
        for x, y in DataLoader(data, batch_size=64):
            print(F.cross_entropy(net(x.to('cpu')), y))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F


        words, rnn = nn.Embedding(100, 16), nn.LSTM(16, 32, bidirectional=True, batch_first=True)
        out, (h, c) = rnn(words(torch.randint(0, 100, (8, 20))))
        print(nn.Linear(64, 2)(out[:, -1]))
        ----
        $ python train.py 9
        import torch
        from torch import nn
        import torch.nn.functional as F


        import sys
        net = nn.Sequential(nn.Linear(4, int(sys.argv[1])), nn.Linear(9, 2))
        print(net(torch.rand(2, 4)))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F


        x = torch.rand(2, 4)
        x.unsqueeze_(1)
        print(nn.Conv1d(1, 2, 3)(x))
        ---- ignored if
        -x.unsqueeze_(1)
        -print(nn.Conv1d(1, 2, 3)(x))
        +for k in range(3):
        +    x = torch.cat([x, x], 1)
        +print(nn.Linear(32, 2)(x))
    """,
)
