import AirDbLogStore

print("usage: CrashWriter <command> <arguments>")
