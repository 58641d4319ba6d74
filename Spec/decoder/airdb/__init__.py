"""A decoder of AirDbLogStore stores, written from Spec/Format.md, Recovery.md and HLC.md alone.

It shares no code with the engine: what both of them read alike is what the specification says.
Section numbers in this package are those of Format.md; `R3` is section 3 of Recovery.md.
"""
