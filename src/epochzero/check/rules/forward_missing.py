"""A model is called, but its class has no forward method."""

from epochzero.check.rule import Rule, failure_check

RULE = Rule(
    category="not_implemented",
    why="Calling a module runs its forward method. PyTorch does not call a method with a "
    "different name. Wrong indentation can place the method outside the class.",
    fix="Define forward in the class.",
    source="PyTorch documentation, torch.nn.Module.forward: should be overridden by all subclasses",
    check=failure_check(
        "forward",
        message=lambda failed: (
            "The model is called, but its class has no forward method: "
            f"{failed.message.partition('[')[2].partition(']')[0]}."
        ),
        fix="Define forward in the class. Check whether its indentation puts it outside the class.",
    ),
    examples="""
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)


        def forward(self, x):
            return self.fc(x)


        model = Net()
        print(model(torch.rand(2, 2)))  # <-
        ---- caught if
        -def forward(self, x):
        -    return self.fc(x)
        +net = Net()
        +for step in range(3):
        +    print(net(torch.rand(2, 2)))  # <-
        @@
        -
        -model = Net()
        -print(model(torch.rand(2, 2)))  # <-
        -
        ----
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)

            forward = lambda self, x: self.fc(x)


        print(Net()(torch.rand(2, 2)))
        ---- ignored if
        -class Net(nn.Module):
        +class Net(nn.Sequential):
        @@
        -    forward = lambda self, x: self.fc(x)
        -
        ---- ignored if
        -    forward = lambda self, x: self.fc(x)
        +    def __call__(self, x):
        +        return self.fc(x)
    """,
)
