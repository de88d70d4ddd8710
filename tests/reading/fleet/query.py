"""Runs SQL on an engine from PyPI: query.py ENGINE < [["name", "statement"], ...]; prints {"name": [[value, ...], ...], ...}.

The engines read the files in the current directory. Values are numbers and strings.
"""

import json
import sys


def duckdb(statements):
    import duckdb

    connection = duckdb.connect()
    for name, sql in statements:
        yield name, connection.execute(sql).fetchall()


def chdb(statements):
    from chdb import session

    with session.Session() as opened:
        for name, sql in statements:
            lines = str(opened.query(sql.rstrip().rstrip(";"), "JSONCompactEachRow")).splitlines()
            yield name, [json.loads(line) for line in lines]


def pyspark(statements):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for name, sql in statements:
        yield name, [list(row) for row in spark.sql(sql.rstrip().rstrip(";")).collect()]
    spark.stop()


run = {"duckdb": duckdb, "chdb": chdb, "pyspark": pyspark}[sys.argv[1]]
print(json.dumps({name: rows for name, rows in run(json.load(sys.stdin))}, default=str))
