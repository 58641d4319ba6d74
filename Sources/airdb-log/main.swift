print("airdb-log")
