width = 32
dim_out = 4
