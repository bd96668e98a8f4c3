"""What Spark says becomes one sentence that tells what is wrong."""

from __future__ import annotations

from sqb.execution.failures import first_line, message_of


def test_a_store_that_refuses_is_told_by_its_own_words() -> None:
    text = (
        "An error occurred while calling o1.append.\n"
        ": org.apache.spark.SparkException: Job aborted: Failed to close current writer\n"
        "\tat org.apache.iceberg.Writer.close(Writer.java:1)\n"
        "Caused by: java.io.IOException: software.amazon.awssdk.NoSuchBucket: no bucket\n"
        "\tat org.apache.iceberg.Stream.close(Stream.java:1)\n"
        "Caused by: software.amazon.awssdk.services.s3.model.NoSuchBucketException: The specified "
        "bucket does not exist (Status Code: 404)\n"
        "\tat software.amazon.awssdk.Handler.handle(Handler.java:1)\n"
    )
    assert message_of(Exception(text)) == (
        "Job aborted: Failed to close current writer "
        "The specified bucket does not exist (Status Code: 404)"
    )
    other = text.replace("software.amazon.awssdk", "my")
    assert message_of(Exception(other)) == "Job aborted: Failed to close current writer"


def test_the_first_line_is_not_the_one_of_py4j() -> None:
    text = (
        "An error occurred while calling o12.localCheckpoint.\n"
        ": java.util.NoSuchElementException: None.get\n"
        "\tat scala.None$.get(Option.scala:627)\n"
    )
    assert first_line(Exception(text)) == "None.get"
    assert first_line(Exception("no such luck\nand more")) == "no such luck"
    assert first_line(Exception()) == ""
