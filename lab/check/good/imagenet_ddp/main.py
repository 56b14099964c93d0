import argparse
import os
import shutil
import time
from enum import Enum

import torch
import torch.distributed as dist
import torch.nn as nn
import torchvision.datasets as datasets
import torchvision.models as models
import torchvision.transforms as transforms
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

model_names = sorted(
    name
    for name in models.__dict__
    if name.islower() and not name.startswith("__") and callable(models.__dict__[name])
)

parser = argparse.ArgumentParser(description="ImageNet")
parser.add_argument("data", metavar="DIR", nargs="?", default="imagenet")
parser.add_argument("-a", "--arch", default="resnet18")
parser.add_argument("-j", "--workers", default=4, type=int)
parser.add_argument("--epochs", default=90, type=int)
parser.add_argument("--start-epoch", default=0, type=int)
parser.add_argument("-b", "--batch-size", default=256, type=int)
parser.add_argument("--lr", "--learning-rate", default=0.1, type=float, dest="lr")
parser.add_argument("--resume", default="", type=str, metavar="PATH")
parser.add_argument("-e", "--evaluate", dest="evaluate", action="store_true")

best_acc1 = 0


class Summary(Enum):
    NONE = 0
    AVERAGE = 1


class AverageMeter:
    def __init__(self, name, fmt=":f", summary=Summary.AVERAGE):
        self.name, self.fmt, self.summary = name, fmt, summary
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


def main():
    global best_acc1
    args = parser.parse_args()
    dist.init_process_group("nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    model = models.__dict__[args.arch]().cuda(gpu)
    model = DistributedDataParallel(model, device_ids=[gpu])
    criterion = nn.CrossEntropyLoss().cuda(gpu)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    if args.resume:
        if os.path.isfile(args.resume):
            checkpoint = torch.load(args.resume, map_location=f"cuda:{gpu}")
            args.start_epoch = checkpoint["epoch"]
            best_acc1 = checkpoint["best_acc1"]
            model.load_state_dict(checkpoint["state_dict"])
            optimizer.load_state_dict(checkpoint["optimizer"])
        else:
            print(f"=> no checkpoint found at '{args.resume}'")
    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train_set = datasets.ImageFolder(
        os.path.join(args.data, "train"),
        transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor(), normalize]),
    )
    val_set = datasets.ImageFolder(
        os.path.join(args.data, "val"),
        transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), normalize]),
    )
    sampler = DistributedSampler(train_set)
    size = args.batch_size // dist.get_world_size()
    train_loader = DataLoader(train_set, size, shuffle=(sampler is None), num_workers=args.workers, sampler=sampler)
    val_loader = DataLoader(val_set, size, num_workers=args.workers)
    if args.evaluate:
        validate(val_loader, model, gpu)
        return
    for epoch in range(args.start_epoch, args.epochs):
        sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, gpu)
        acc1 = validate(val_loader, model, gpu)
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        if dist.get_rank() == 0:
            state = {
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "best_acc1": best_acc1,
                "optimizer": optimizer.state_dict(),
            }
            save_checkpoint(state, is_best)
    dist.destroy_process_group()


def train(loader, model, criterion, optimizer, epoch, gpu):
    losses, taken = AverageMeter("Loss", ":.4e"), AverageMeter("Time", ":6.3f", Summary.NONE)
    model.train()
    end = time.time()
    for step, (images, target) in enumerate(loader):
        images, target = images.cuda(gpu, non_blocking=True), target.cuda(gpu, non_blocking=True)
        loss = criterion(model(images), target)
        losses.update(loss.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        taken.update(time.time() - end)
        end = time.time()
        if step % 10 == 0:
            print(f"Epoch: [{epoch}]", losses, taken, sep="\t")


def validate(loader, model, gpu):
    top1 = AverageMeter("Acc@1", ":6.2f")
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            output = model(images.cuda(gpu))
            right = output.argmax(1).eq(target.cuda(gpu)).float().mean() * 100
            top1.update(right.item(), images.size(0))
    print(" *", top1)
    return top1.avg


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


if __name__ == "__main__":
    main()
