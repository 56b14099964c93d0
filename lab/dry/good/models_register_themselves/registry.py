MODELS = {}


def register(name):
    def put(cls):
        MODELS[name] = cls
        return cls

    return put
