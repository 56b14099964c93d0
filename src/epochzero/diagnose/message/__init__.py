"""What a message says did not hold, and the category that this decides."""

from epochzero.diagnose.message.reader import MessageReading, category_of, read_message
