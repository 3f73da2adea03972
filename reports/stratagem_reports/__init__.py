"""Charts and reports from Stratagem's results files.

Data flows one way: load -> statistics -> chart_data -> charts, gantt, summary, table -> report.
Only the modules that draw import matplotlib, so that bad input is refused before it is loaded.
"""
