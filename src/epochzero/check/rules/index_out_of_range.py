"""An index is outside its list or text."""

from epochzero.check.rule import Rule, failure_check

RULE = Rule(
    category="illegal_index",
    why="Programs often read command-line arguments, fields of a line and configuration entries "
    "by index. The job fails if the input has too few elements.",
    fix="Provide the missing input, or check the length first.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Index",
    check=failure_check(
        "index",
        message=lambda failed: (
            f"The sequence has fewer items than the index needs: {failed.at.place.code}"
        ),
        fix="Provide the missing input, or check the length first.",
    ),
    examples="""
        $ python train.py data
        import sys

        print(sys.argv[2])  # <-
        ----
        splits = ('train', 'val')


        def test(s):
            print(s[2])  # <-


        test(splits)
        ----
        names = 'a,b'.split(',')
        print(names[2])  # <-
        ----
        import sys

        print(sys.argv[1] if len(sys.argv) > 1 else 'data')
        ---- ignored if
        -print(sys.argv[1] if len(sys.argv) > 1 else 'data')
        +try:
        +    print(sys.argv[1])
        +except IndexError:
        +    print('none')
        ----
        import glob

        found = []
        for name in glob.glob('*.pt'):
            found.append(name)
            print(found[-1])
        print(found[0])
        ----
        names = ['a', 'b']
        print(names[-1], names[0:5], names[1])
        ----
        losses = []
        for step in range(99):
            if step > 5:
                print(losses[5])
            losses.append(step)
        print(losses[98])
        ----
        class Buffer:
            count = 0
            def add(self):
                self.count += 1
            def sample(self):
                if self.count < 64:
                    raise ValueError('too few')
                return self.count

        buffer = Buffer()
        losses = []
        for step in range(999):
            buffer.add()
            if step >= 99:
                losses.append(buffer.sample())
        print(losses[0])
        ----
        names = []
        try:
            print(names[0])
        except IndexError:
            pass
    """,
)
